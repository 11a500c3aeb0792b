import { isRecord } from 'millrace/values';

/** Longer messages are HTML pages or dumps. */
const maxLength = 500;

/** Describes a thrown value in one line, without secrets. */
export const describe = (thrown: unknown, clean: (text: string) => string): string => {
  try {
    const text = [fieldOf(thrown, 'message'), fieldOf(thrown, 'name')].find(Boolean);
    return clean(text ?? String(thrown))
      .replaceAll(/\s+/g, ' ')
      .slice(0, maxLength);
  } catch {
    return 'the thrown value cannot be displayed';
  }
};

/**
 * Copies only the redacted names and messages of an error and its causes: errors of SDKs hold the request and its key.
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
