export const isInsideCharacter = (text: string, at: number): boolean =>
  isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at));

/** Moves an index in the middle of a surrogate pair to its start. */
export const characterStart = (text: string, at: number): number =>
  isInsideCharacter(text, at) ? at - 1 : at;

/** Moves an index in the middle of a surrogate pair to its end. */
export const characterEnd = (text: string, at: number): number =>
  isInsideCharacter(text, at) ? at + 1 : at;

/** The length without a high surrogate at the end, whose other half may still arrive. */
export const wholeLength = (text: string): number =>
  isHigh(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length;

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
