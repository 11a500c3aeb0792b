/** The command line asks for what there is not. The message says what there is. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
