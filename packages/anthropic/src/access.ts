import { type Access, resolveAccess } from '@millrace/wire';
import type { AnthropicOptions } from './options.js';

const vendor = 'Anthropic';
const ownUrl = 'https://api.anthropic.com';

/** Access to the Messages API, with the name of the server in errors. */
export interface MessagesAccess extends Access {
  readonly vendor: string;
}

/** Resolves the base URL and credentials. Throws a `config` error that names what is missing. */
export const accessOf = ({ betas, headers, ...options }: AnthropicOptions): MessagesAccess => {
  const access = resolveAccess(
    {
      vendor,
      baseURL: ownUrl,
      baseURLVariable: 'ANTHROPIC_BASE_URL',
      exampleUrl: 'https://example.com',
      keyVariables: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
      headersVariable: 'ANTHROPIC_CUSTOM_HEADERS',
    },
    { ...options, headers: withBetas(headers ?? {}, betas ?? []) },
  );
  // Request paths start with it.
  const baseURL = access.baseURL.replace(/\/v1$/u, '');
  return { ...access, baseURL, vendor: vendorAt(baseURL) };
};

/** Another server may implement this API: errors must not blame Anthropic. */
const vendorAt = (baseURL: string): string => {
  const { host } = new URL(baseURL);
  return host === new URL(ownUrl).host ? vendor : `The server at ${host}`;
};

/** Merges the beta features of the option and of a header. */
const withBetas = (
  headers: Readonly<Record<string, string>>,
  betas: readonly string[],
): Readonly<Record<string, string>> => {
  const entries = Object.entries(headers);
  const isBeta = ([name]: readonly [string, string]): boolean =>
    name.toLowerCase() === 'anthropic-beta';
  const all = [...betas, ...entries.filter(isBeta).flatMap(([, value]) => value.split(','))]
    .map((beta) => beta.trim())
    .filter((beta) => beta !== '');
  const others = Object.fromEntries(entries.filter((entry) => !isBeta(entry)));
  return all.length === 0 ? others : { ...others, 'anthropic-beta': [...new Set(all)].join(',') };
};
