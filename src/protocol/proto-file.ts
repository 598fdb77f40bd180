import { create, createFileRegistry, type FileRegistry } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  OneofDescriptorProtoSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";

const SCALARS: Record<string, Type> = {
  string: Type.STRING,
  bytes: Type.BYTES,
  bool: Type.BOOL,
  uint32: Type.UINT32,
  float: Type.FLOAT,
  double: Type.DOUBLE,
};

const FIELD = /^(?:(optional|repeated) )?(\w+) (\w+) = (\d+);$/;

/**
 * The types of a .proto file, read when the program starts, so that the file is the only source and no
 * generated code can differ from it. It knows what our files use: proto3, a package, and messages of
 * fields that stand on a line each; anything else is an error.
 */
export function readProto(text: string, name: string): FileRegistry {
  const file = create(FileDescriptorProtoSchema, { name, syntax: "proto3" });
  let message: DescriptorProto | null = null;
  for (const [index, raw] of text.split("\n").entries()) {
    const line = raw.trim();
    const opened = /^message (\w+) \{$/.exec(line);
    const field = FIELD.exec(line);
    const packaged = /^package ([\w.]+);$/.exec(line);
    if (line === "" || line.startsWith("//") || line === 'syntax = "proto3";') continue;
    if (packaged) file.package = packaged[1] as string;
    else if (opened && !message) {
      message = create(DescriptorProtoSchema, { name: opened[1] as string });
    } else if (field && message) addField(message, field, file.package);
    else if (line === "}" && message) {
      file.messageType.push(message);
      message = null;
    } else throw new Error(`${name}:${index + 1}: not understood: ${line}`);
  }
  return createFileRegistry(file, () => undefined);
}

function addField(message: DescriptorProto, match: RegExpExecArray, packageName: string): void {
  const [, label, type = "", name = "", number] = match;
  const scalar = SCALARS[type];
  const field: FieldDescriptorProto = create(FieldDescriptorProtoSchema, {
    name,
    jsonName: name,
    number: Number(number),
    label: label === "repeated" ? Label.REPEATED : Label.OPTIONAL,
    type: scalar ?? Type.MESSAGE,
    ...(scalar === undefined && { typeName: `.${packageName}.${type}` }),
  });
  if (label === "optional") {
    // How proto3 says that a field may be absent: a oneof of its own.
    field.proto3Optional = true;
    field.oneofIndex = message.oneofDecl.length;
    message.oneofDecl.push(create(OneofDescriptorProtoSchema, { name: `_${name}` }));
  }
  message.field.push(field);
}
