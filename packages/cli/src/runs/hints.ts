import type { StoreArguments } from '../command-line/arguments.js';
import { printableName } from '../presentation/printable.js';
import type { Theme } from '../presentation/theme.js';
import { wrapFor } from '../presentation/wrap.js';
import { shortId } from './run-id.js';

/** The command line to fork, resume or replay a run of this store. */
export const commandFor = (
  command: 'fork' | 'resume' | 'replay',
  callId: string,
  { store }: StoreArguments,
): string =>
  `npx @millrace/cli ${command} ${quoted(printableName(shortId(callId)))}${storeOption(store)}`;

/** A hint that ends with a command line, which stays whole: on a line of its own if it does not fit. */
export const hint = (text: string, command: string, theme: Theme): string => {
  const line = `${text} ${command}`;
  return theme.isTerminal !== true || line.length <= theme.width
    ? line
    : `${wrapFor(text, theme)}\n  ${command}`;
};

/** The option that selects the store again; empty for the default. Hides database URLs, which may contain secrets. */
export const storeOption = (store: string | false | undefined): string => {
  if (typeof store !== 'string') return '';
  return /^postgres(?:ql)?:\/\//.test(store)
    ? ' --store postgres://…'
    : ` --store ${quoted(store)}`;
};

const quoted = (word: string): string =>
  /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
