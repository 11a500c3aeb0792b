/** Truncates a string at the end of a word: a later redaction would not find half a secret. */
export const truncate = (text: string, longest: number): string =>
  text.length <= longest
    ? text
    : text
        .slice(0, longest)
        .replace(/[\w!#$%&*+./;<=>?@\\^`|~-]+$/u, '')
        .trimEnd();
