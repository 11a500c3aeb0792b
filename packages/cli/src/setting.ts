import type { Arguments } from './command-line/arguments.js';
import type { Environment } from './environment.js';
import type { Theme } from './presentation/theme.js';
import type { Output } from './terminal/output.js';

/** The context of one run of the command. */
export interface Setting<Given = Arguments> {
  readonly given: Given;
  readonly environment: Environment;
  readonly output: Output;
  readonly theme: Theme;
  /** The theme of `stderr`, which may be another terminal or a file. */
  readonly errorTheme: Theme;
  /** Whether to print the stack of errors. */
  readonly debug: boolean;
}
