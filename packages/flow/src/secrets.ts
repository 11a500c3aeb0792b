import { render, templateOf } from './render.js';
import type { Scope } from './scope.js';
import { namePattern } from './ids.js';

/**
 * Keeps secrets out of what a request shows: the input of its tool call, which events, approvals and the journal have,
 * contains references. Texts of data are escaped, so that data which looks like a reference is not taken for one.
 */
export interface Secrets {
  /** Whether a template refers to a secret. */
  readonly isIn: (text: string) => boolean;
  /** Renders a template; its secrets stay references. `encode` gets inserted values, with their place in the template. */
  readonly show: (
    text: string,
    scope: Scope,
    encode?: (value: string, index: number) => string,
  ) => string;
  readonly escape: (value: unknown) => unknown;
  /** Replaces the references in a shown text by the secrets. */
  readonly reveal: (shown: string, encode?: (value: string) => string) => string;
  /** As `reveal`, for all texts in a value. */
  readonly revealAll: (shown: unknown) => unknown;
  /** Replaces secrets of at least 4 characters by `[secret NAME]`. */
  readonly redact: (text: string) => string;
}

const name = namePattern.slice(1, -1);
const reference = new RegExp(`\\\\([\\s\\S])|\\{\\{secret\\.(${name})\\}\\}`, 'gu');
const asIs = (value: string): string => value;

/** `templates` are those of one component: without a secret in them, texts are shown as they are. */
export const createSecrets = (
  templates: readonly string[],
  values: Readonly<Record<string, string>>,
): Secrets => {
  const isIn = (text: string): boolean =>
    templateOf(text).some((part) => typeof part === 'object' && part.of === 'secret');
  const used = templates.flatMap((text) =>
    templateOf(text).flatMap((part) =>
      typeof part === 'object' && part.of === 'secret' ? part.name : [],
    ),
  );
  const isPlain = used.length === 0;
  const valueOf = (key: string): string => (Object.hasOwn(values, key) ? (values[key] ?? '') : '');
  const escapeText = (text: string): string =>
    isPlain ? text : text.replaceAll('\\', '\\\\').replaceAll('{{secret.', '\\{{secret.');
  const reveal: Secrets['reveal'] = (shown, encode = asIs) =>
    isPlain
      ? shown
      : shown.replace(reference, (_all, escaped: string | undefined, key: string | undefined) =>
          key === undefined ? (escaped ?? '') : encode(valueOf(key)),
        );
  const hidden = [...new Set(used)].flatMap((key) =>
    writtenForms(valueOf(key)).map((form) => [form, `[secret ${key}]`] as const),
  );
  return {
    isIn,
    show: (text, scope, encode = asIs) => {
      const [open, parts] = templateOf(text).reduce<readonly [string, readonly string[]]>(
        ([run, shown], part, index) => {
          if (typeof part === 'string') return [run + part, shown];
          // Neighbouring data is escaped together: two harmless texts may join to a reference.
          if (part.of !== 'secret') return [run + encode(render([part], scope), index), shown];
          return ['', [...shown, escapeText(run), `{{secret.${part.name}}}`]];
        },
        ['', []],
      );
      return [...parts, escapeText(open)].join('');
    },
    escape: (value) => mapTexts(value, escapeText),
    reveal,
    revealAll: (shown) => mapTexts(shown, (text) => reveal(text)),
    redact: (text) => hidden.reduce((left, [value, shown]) => left.replaceAll(value, shown), text),
  };
};

/** A shorter value would hide parts of words. */
const minLength = 4;

/** The forms in which a response may repeat a secret: plain, in a URL, and in JSON, which may be in JSON again. */
const writtenForms = (secret: string): readonly string[] => {
  if (secret.length < minLength) return [];
  const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);
  const [once, twice] = [escaped(secret), escaped(escaped(secret))];
  // The longest first: a shorter form is part of a longer one.
  return [...new Set([escaped(twice), twice, once, encodeURIComponent(secret), secret])];
};

const mapTexts = (value: unknown, change: (text: string) => string): unknown => {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item: unknown) => mapTexts(item, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, mapTexts(item, change)]),
  );
};
