import type { Outcome } from './ask.js';
import type { PromptResult } from './terminal/prompt.js';

export interface ChatOptions {
  /** Reads a question from the user. */
  readonly prompt: () => Promise<PromptResult>;
  /** Asks the agent, and prints the answer or error. */
  readonly ask: (question: string) => Promise<Outcome | 'failed'>;
}

/**
 * Answers questions until an empty line, `exit` or the end of the input. Resolves to `stopped` after Ctrl-C at the
 * prompt or two during an answer, and to `terminated` after a signal during an answer.
 */
export const chat = async ({
  prompt,
  ask,
}: ChatOptions): Promise<'ended' | 'stopped' | 'terminated'> => {
  for (;;) {
    const entered = await prompt();
    if (entered.type === 'interrupt') return 'stopped';
    const question = entered.type === 'line' ? entered.line.trim() : '';
    if (['', 'exit', 'quit'].includes(question)) return 'ended';
    const outcome = await ask(question);
    if (outcome === 'stopped' || outcome === 'terminated') return outcome;
  }
};
