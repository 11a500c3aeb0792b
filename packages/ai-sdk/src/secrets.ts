import { isRecord } from 'millrace/values';

/**
 * The secrets that answers and errors must not show. Without own ones, those of the environment: the provider interface hides the
 * key that a provider uses, and providers read it from there by default.
 */
export const secretsOf = (own: readonly string[] | undefined): readonly string[] =>
  own ?? Object.entries(environment()).flatMap(([name, value]) => secretIn(name, value));

const secretIn = (name: string, value: unknown): readonly string[] =>
  secretName.test(name) && typeof value === 'string' && value !== '' ? [value] : [];

const secretName = /(_API_KEY|_API_TOKEN|_ACCESS_KEY|_SECRET|_SESSION_TOKEN|^AWS_BEARER_TOKEN_.+)$/;

const environment = (): Readonly<Record<string, unknown>> => {
  const { process }: { readonly process?: unknown } = globalThis;
  return isRecord(process) && isRecord(process['env']) ? process['env'] : {};
};
