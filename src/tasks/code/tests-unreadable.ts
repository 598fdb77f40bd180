/** A way of writing tests down that is not known here; the message says what is wrong. */
export class TestsUnreadable extends Error {}
