/**
 * Shortens a text, and leaves no begun word at its end: half a secret would not be found by what takes secrets out
 * later.
 */
export const shortened = (text: string, longest: number): string =>
  text.length <= longest
    ? text
    : text
        .slice(0, longest)
        .replace(/[\w!#$%&*+./;<=>?@\\^`|~-]+$/u, '')
        .trimEnd();
