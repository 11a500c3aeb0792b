/** Names a tool at the beginning of a sentence. */
export const titleOf = (name: string): string =>
  /^[a-z]+$/u.test(name) ? `The ${name}` : `The tool ${name}`;
