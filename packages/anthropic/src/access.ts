import { MillraceError } from '@millrace/core';
import type { AnthropicOptions, ApiKey } from './options.js';

/** Where the API is, and how it knows us. */
export interface Access {
  readonly apiKey: ApiKey;
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Finds the key and the address, in the options and then in the environment. Throws a `config` error that says what
 * is missing.
 */
export const findAccess = ({
  apiKey,
  baseUrl,
  headers = {},
  betas = [],
}: AnthropicOptions): Access => {
  const key = apiKey ?? variable('ANTHROPIC_API_KEY') ?? variable('ANTHROPIC_AUTH_TOKEN');
  if (key === undefined || (typeof key === 'string' && key.trim() === '')) {
    throw misuse(`Anthropic needs a key: set ANTHROPIC_API_KEY, or pass the option 'apiKey'.`);
  }
  return {
    apiKey: typeof key === 'string' ? key.trim() : key,
    baseUrl: address(baseUrl ?? variable('ANTHROPIC_BASE_URL') ?? 'https://api.anthropic.com'),
    headers: { ...(betas.length === 0 ? {} : { 'anthropic-beta': betas.join(',') }), ...headers },
  };
};

/** What must not be shown: the key, and the values of headers that hold such things. A function's keys come later. */
export const secretsIn = ({ apiKey, headers }: Access): readonly string[] => [
  ...(typeof apiKey === 'string' ? [apiKey] : []),
  ...[...customHeaders(), ...Object.entries(headers)].flatMap(([name, value]) =>
    secretHeader.test(name) ? [value, value.replace(/^\S+\s+/, '')] : [],
  ),
];

const secretHeader = /auth|key|token|secret|cookie/i;

const address = (text: string): string => {
  const fix = `set ANTHROPIC_BASE_URL, or pass the option 'baseUrl', such as 'https://example.com'`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw misuse(`The address of Anthropic is no http address: ${fix}.`);
  }
  if (url.username !== '' || url.password !== '') {
    throw misuse(
      `The address of Anthropic holds a name and password, which cannot be sent so: pass the option 'headers' instead.`,
    );
  }
  return text.trim().replace(/\/+$/, '');
};

/** As the vendor's SDK reads its variables. */
const variable = (name: string): string | undefined => {
  const value = process.env[name]?.trim();
  return value === '' ? undefined : value;
};

/** Headers that the vendor's SDK takes from the environment, one a line. */
const customHeaders = (): readonly (readonly [name: string, value: string])[] =>
  (variable('ANTHROPIC_CUSTOM_HEADERS') ?? '').split('\n').map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });

const misuse = (message: string): MillraceError => new MillraceError('config', message);
