/** A part of a question as it is repeated: on one line, without its end marks, and not too long. */
export const shorten = (text: string): string => {
  const bare = text
    .slice(0, 1_000)
    .replace(/\s+/gu, ' ')
    .trim()
    .replace(/^(?:and|also|then|but)[ ,]+/iu, '')
    .replace(/[\s.?!…,;:]{1,20}$/u, '');
  return bare.length > longest ? `${bare.slice(0, longest).trimEnd()}…` : bare;
};

const longest = 80;
