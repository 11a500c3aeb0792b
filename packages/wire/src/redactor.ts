import { isPlaceholder } from './is-placeholder.js';
import { memoize, memoizeByObject } from './memoize.js';

/** Redacts secrets in strings. */
export interface Redactor {
  /** For answers: redacts only strings that are unlikely to occur by chance. */
  readonly answer: (text: string) => string;
  /** For errors: redacts everything that may be a secret. */
  readonly error: (text: string) => string;
}

/** Shorter secrets would match ordinary words. */
const minSecretLength = 6;

/** A short secret may occur in an answer by chance, and a damaged answer is worse than a visible word. */
const isUnlikely = (secret: string): boolean =>
  secret.length >= 16 || (secret.length >= 8 && /\d/u.test(secret) && /\p{L}/u.test(secret));

/**
 * Creates a redactor for a list of secrets, which may grow. It finds each secret verbatim, URL-encoded, escaped in
 * JSON, and in base64 at any offset. In errors, secrets have at least 6 characters; in answers at least 16, or 8 with
 * letters and digits. Placeholders are not secrets. Costs one search per form, and none in a string shorter than every
 * secret.
 */
export const createRedactor = (secrets: readonly string[]): Redactor => ({
  answer: cleaner(secrets, isUnlikely),
  error: cleaner(secrets, ({ length }) => length >= minSecretLength),
});

/** As `createRedactor`, once for each list. */
export const redactorOf = memoizeByObject(createRedactor);

const cleaner = (
  secrets: readonly string[],
  counts: (secret: string) => boolean,
): ((text: string) => string) => {
  let known = 0;
  let minLength = Infinity;
  let forms: readonly string[] = [];
  return (text) => {
    if (known !== secrets.length) {
      known = secrets.length;
      forms = allForms(secrets.filter(counts));
      minLength = Math.min(...forms.map(({ length }) => length));
    }
    return text.length < minLength ? text : redactForms(forms, text);
  };
};

const redactForms = (forms: readonly string[], text: string): string =>
  forms.reduce(
    (clean, form) => (clean.includes(form) ? clean.replaceAll(form, '[redacted]') : clean),
    text,
  );

const allForms = (secrets: readonly string[]): readonly string[] =>
  [...new Set(secrets.flatMap(formsOf))]
    // The longest first, because one secret may be a prefix of another.
    .sort((a, b) => b.length - a.length);

/** Memoized, because a model sends the same key with each request. */
const formsOf = memoize((secret: string): readonly string[] => {
  if (isPlaceholder(secret)) return [];
  const inJson = JSON.stringify(secret).slice(1, -1);
  return [
    secret,
    encodeURIComponent(new TextDecoder().decode(utf8.encode(secret))),
    inJson,
    // PHP escapes slashes.
    inJson.replaceAll('/', '\\/'),
    ...[0, 1, 2].flatMap((offset) => base64Forms(secret, offset)),
  ];
});

const utf8 = new TextEncoder();

/** The base64 of a secret at a byte offset, without the characters that also encode neighboring bytes. */
const base64Forms = (secret: string, offset: number): readonly string[] => {
  const bytes = [...Array<number>(offset).fill(0), ...utf8.encode(secret)];
  const to = Math.floor((bytes.length * 8) / 6);
  const base64 = btoa(String.fromCharCode(...bytes)).slice([0, 2, 3][offset], to);
  return [base64, base64.replaceAll('+', '-').replaceAll('/', '_')];
};
