/** `wanted`, or something like it where a client has used that id already. */
export function freeId(wanted: string, isTaken: (id: string) => boolean): string {
  for (let id = wanted; ; id = `${wanted}-${crypto.randomUUID().slice(0, 8)}`) {
    if (!isTaken(id)) return id;
  }
}
