/** A member of a tar as it would never be written: any name, any kind. */
export type TarMember = {
  name: string;
  /** Of ustar: 0 file, 1 hard link, 2 symbolic link, 3 character device, 5 folder. */
  type?: "0" | "1" | "2" | "3" | "5";
  link?: string;
  content?: string;
  mode?: number;
};

export function makeTar(members: TarMember[]): Buffer {
  const blocks = members.flatMap((member) => {
    const content = Buffer.from(member.content ?? "");
    const padding = Buffer.alloc((512 - (content.length % 512)) % 512);
    return [header(member, content.length), content, padding];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

function header({ name, type = "0", link = "", mode = 0o755 }: TarMember, size: number): Buffer {
  const block = Buffer.alloc(512);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  const fields: [at: number, text: string][] = [
    [0, name],
    [100, octal(mode, 7)],
    [108, octal(4711, 7)],
    [116, octal(4711, 7)],
    [124, octal(size, 11)],
    [136, octal(1_700_000_000, 11)],
    [148, " ".repeat(8)],
    [156, type],
    [157, link],
    [257, "ustar\0" + "00"],
    [329, octal(1, 7)],
    [337, octal(3, 7)],
  ];
  for (const [at, text] of fields) block.write(text, at);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148);
  return block;
}
