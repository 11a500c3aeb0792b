import type { Arguments } from './command-line/arguments.js';
import type { Environment } from './environment.js';
import type { Theme } from './presentation/theme.js';
import type { Output } from './terminal/output.js';

/** What one run of the command works with. */
export interface Setting<Given = Arguments> {
  readonly given: Given;
  readonly environment: Environment;
  readonly output: Output;
  readonly theme: Theme;
  /** The theme of `stderr`, which may go elsewhere. */
  readonly errorTheme: Theme;
  /** Whether errors show their stack. */
  readonly debug: boolean;
}
