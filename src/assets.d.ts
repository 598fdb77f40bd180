declare module "*.py" {
  const text: string;
  export default text;
}
declare module "*.sh" {
  const text: string;
  export default text;
}
declare module "*.md" {
  const text: string;
  export default text;
}
declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*.bin" {
  const path: string;
  export default path;
}
declare module "*.proto" {
  const text: string;
  export default text;
}
