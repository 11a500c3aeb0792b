import { type ParsedToken, parse } from 'sugar-high/core';
import { lang, languages } from 'sugar-high/lang';

/** Some languages take time in proportion to the square of the length. */
const maxLength = 10_000;

/** The tokens of code, line by line; undefined if its language is not known or it is too long. */
export const tokenLines = (
  code: string,
  language: string,
): readonly (readonly ParsedToken[])[] | undefined => {
  const id = lang(language);
  if (id === undefined || id === 'plaintext' || code.length > maxLength) return undefined;
  return parse(code, languages.find((known) => known.id === id)?.config).lines.map(
    ({ tokens }) => tokens,
  );
};
