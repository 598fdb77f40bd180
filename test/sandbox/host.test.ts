import { conformance } from "./conformance.ts";

conformance("host");
