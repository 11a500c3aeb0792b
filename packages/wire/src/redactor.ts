import { isPlaceholder } from './is-placeholder.js';
import { remembered } from './remembered.js';

/** Takes secrets out of texts. */
export interface Redactor {
  /** Takes out of an answer what cannot be anything but a secret. */
  readonly answer: (text: string) => string;
  /** Takes everything out of an error that may be a secret: nothing is lost with it. */
  readonly error: (text: string) => string;
}

/** Shorter secrets would be found in ordinary words. */
const shortest = 6;

/** What may stand in an answer by chance is left there: one that is damaged is worse than a word that is shown. */
const isUnlikely = (secret: string): boolean =>
  secret.length >= 16 || (secret.length >= 8 && /\d/u.test(secret) && /\p{L}/u.test(secret));

/**
 * Makes what takes secrets out of texts: each as it is, URL-encoded, as JSON writes it, and in base64 wherever it
 * stands in what was encoded. Out of errors it takes those of 6 characters and more; out of answers those of 16 and
 * more, or of 8 and more with letters and digits. Placeholders are no secrets. The list may grow. Costs one search a
 * form, and nothing where the text is shorter than each secret.
 */
export const createRedactor = (secrets: readonly string[]): Redactor => ({
  answer: cleaner(secrets, isUnlikely),
  error: cleaner(secrets, ({ length }) => length >= shortest),
});

const cleaner = (
  secrets: readonly string[],
  counts: (secret: string) => boolean,
): ((text: string) => string) => {
  let known = 0;
  let least = Infinity;
  let forms: readonly string[] = [];
  return (text) => {
    if (known !== secrets.length) {
      known = secrets.length;
      forms = allForms(secrets.filter(counts));
      least = Math.min(...forms.map(({ length }) => length));
    }
    return text.length < least ? text : without(forms, text);
  };
};

const without = (forms: readonly string[], text: string): string =>
  forms.reduce(
    (clean, form) => (clean.includes(form) ? clean.replaceAll(form, '[redacted]') : clean),
    text,
  );

const allForms = (secrets: readonly string[]): readonly string[] =>
  [...new Set(secrets.flatMap(formsOf))]
    // One secret may be the beginning of another.
    .sort((a, b) => b.length - a.length);

/** A model has the same key in each of its requests. A placeholder has no forms. */
const formsOf = remembered((secret: string): readonly string[] => {
  if (isPlaceholder(secret)) return [];
  const inJson = JSON.stringify(secret).slice(1, -1);
  return [
    secret,
    encodeURIComponent(Buffer.from(secret).toString()),
    inJson,
    // PHP writes it so.
    inJson.replaceAll('/', '\\/'),
    ...[0, 1, 2].flatMap((offset) => base64Forms(secret, offset)),
  ];
});

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
