import type { Outcome } from './ask.js';
import type { Entered } from './terminal/prompt.js';

/** Both ends of a chat. */
export interface ChatOptions {
  /** Asks the person for a question. */
  readonly prompt: () => Promise<Entered>;
  /** Asks the agent that question; it shows its own errors. */
  readonly ask: (question: string) => Promise<Outcome | 'failed'>;
}

/**
 * Asks question after question, until an empty line, `exit` or the end of the input; `stopped` by Ctrl-C at the prompt, or twice at an answer; `terminated` by a signal
 * at an answer.
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
