import { isRecord } from 'millrace/values';
import type { HeadersLike } from '@millrace/wire';

/** The headers of a response, as providers report them: a record whose names may have any case. */
export const headersOf = (headers: unknown): HeadersLike => {
  const entries = isRecord(headers) ? Object.entries(headers) : [];
  const byName = new Map(entries.map(([name, value]) => [name.toLowerCase(), value]));
  return {
    get: (name) => {
      const value = byName.get(name);
      return typeof value === 'string' ? value : null;
    },
  };
};

export const headerIn = (headers: unknown, name: string): string =>
  headersOf(headers).get(name) ?? '';
