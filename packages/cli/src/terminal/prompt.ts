import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

export type PromptResult =
  | { readonly type: 'line'; readonly line: string }
  | { readonly type: 'end' }
  | { readonly type: 'interrupt' };

export interface PromptOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly text: string;
}

/**
 * Creates a function that reads one line, with line editing and history. Between lines it releases the terminal, so
 * Ctrl-C is a signal then. Pasted lines are returned one by one.
 */
export const createPrompt = ({
  input,
  output,
  text,
}: PromptOptions): (() => Promise<PromptResult>) => {
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
      let entered: PromptResult = { type: 'end' };
      reader.on('history', (lines) => (history = lines));
      reader.on('line', (line) => {
        if (entered.type === 'line') {
          pasted.push(line);
          return;
        }
        entered = { type: 'line', line };
        // The other lines of a paste arrive before this runs.
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
