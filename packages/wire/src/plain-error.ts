import { isRecord } from '@millrace/core/adapter';

/** A longer message is a page or a dump. */
const longest = 500;

/** What a thrown value says, in one line and without secrets. */
export const describe = (thrown: unknown, clean: (text: string) => string): string => {
  try {
    const text = [fieldOf(thrown, 'message'), fieldOf(thrown, 'name')].find(Boolean);
    return clean(text ?? String(thrown))
      .replaceAll(/\s+/g, ' ')
      .slice(0, longest);
  } catch {
    return 'a value that cannot be shown was thrown';
  }
};

/**
 * Copies the names and messages of a thrown value and its causes, cleaned, and nothing else: an SDK's error
 * carries the request with its key.
 */
export const plainError = (
  thrown: unknown,
  clean: (text: string) => string,
  depth = 0,
): Error | undefined => {
  if (thrown === undefined || depth > 4) return undefined;
  const inner = isRecord(thrown) ? plainError(thrown['cause'], clean, depth + 1) : undefined;
  const plain = new Error(describe(thrown, clean), inner === undefined ? {} : { cause: inner });
  plain.name = clean(fieldOf(thrown, 'name') ?? 'Error');
  return plain;
};

const fieldOf = (thrown: unknown, name: string): string | undefined => {
  const value = isRecord(thrown) ? thrown[name] : undefined;
  return typeof value === 'string' ? value : undefined;
};
