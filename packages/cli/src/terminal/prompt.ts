import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

/** What a person did at the prompt. */
export type Entered =
  | { readonly type: 'line'; readonly line: string }
  | { readonly type: 'end' }
  | { readonly type: 'interrupt' };

/** Where a prompt is shown, and what it says. */
export interface PromptOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly text: string;
}

/**
 * Makes a function that asks for one line, with the line editor and the history of a shell. Between two lines it
 * leaves the terminal alone, so that Ctrl-C is a signal then; of lines that are pasted, it gives one after the other.
 */
export const createPrompt = ({ input, output, text }: PromptOptions): (() => Promise<Entered>) => {
  const pasted: string[] = [];
  let history: string[] = [];
  return () =>
    new Promise((resolve) => {
      output.write('\n');
      const next = pasted.shift();
      if (next !== undefined) {
        output.write(`${text}${next}\n`);
        resolve({ type: 'line', line: next });
        return;
      }
      const reader = createInterface({ input, output, prompt: text, history });
      let entered: Entered = { type: 'end' };
      reader.on('history', (lines) => (history = lines));
      reader.on('line', (line) => {
        if (entered.type === 'line') {
          pasted.push(line);
          return;
        }
        entered = { type: 'line', line };
        // The other lines of a paste come before this does.
        queueMicrotask(() => reader.close());
      });
      reader.on('SIGINT', () => {
        entered = { type: 'interrupt' };
        reader.close();
      });
      reader.once('close', () => {
        if (entered.type !== 'line') output.write('\n');
        resolve(entered);
      });
      reader.prompt();
    });
};
