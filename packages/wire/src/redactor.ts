/** Shorter secrets would be found in ordinary words. */
const shortest = 6;

/**
 * Makes the function that takes secrets out of a text: each as it is, URL-encoded, as JSON writes it, and in
 * base64 wherever it stands in what was encoded. Secrets of fewer than 6 characters are left. The list may
 * grow. Costs one search a form.
 */
export const createRedactor = (secrets: readonly string[]): ((text: string) => string) => {
  let known = 0;
  let forms: readonly string[] = [];
  return (text) => {
    if (known !== secrets.length) {
      known = secrets.length;
      forms = allForms(secrets);
    }
    return forms.reduce(
      (clean, form) => (clean.includes(form) ? clean.replaceAll(form, '[redacted]') : clean),
      text,
    );
  };
};

const allForms = (secrets: readonly string[]): readonly string[] =>
  [...new Set(secrets.filter(({ length }) => length >= shortest).flatMap(formsOf))]
    // One secret may be the beginning of another.
    .sort((a, b) => b.length - a.length);

const formsOf = (secret: string): readonly string[] => [
  secret,
  encodeURIComponent(Buffer.from(secret).toString()),
  JSON.stringify(secret).slice(1, -1),
  ...[0, 1, 2].flatMap((offset) => base64Forms(secret, offset)),
];

/**
 * What base64 makes of the secret behind so many bytes, without the characters that its neighbours have a part
 * in.
 */
const base64Forms = (secret: string, offset: number): readonly string[] => {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
  const from = [0, 2, 3][offset];
  const to = Math.floor((bytes.length * 8) / 6);
  return [bytes.toString('base64').slice(from, to), bytes.toString('base64url').slice(from, to)];
};
