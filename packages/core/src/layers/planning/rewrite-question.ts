import { concatMap } from 'rxjs';
import { textOf } from '../../values/message.js';
import { entry, transcriptOf } from '../../memories/transcript.js';
import { checkOptions, wholeNumber } from '../../values/options.js';
import { addNote, charge, isOpen, withQuestion } from '../../seams/call.js';
import { consultInCall$, instruction } from '../../phases/consult.js';
import type { Layer } from '../../seams/layer.js';
import type { PlanningOptions } from './planning-options.js';
import { planningRules, rewriteQuestionPrompt, writtenPrompt } from './planning-options.js';

/** When a question is written anew, and how. */
export interface RewriteQuestionOptions extends PlanningOptions {
  /** Messages of history above which it is. Default: 3. */
  readonly above?: number;
}

const shown = 12;

const most = 2_000;

/**
 * Makes a layer that writes what was asked anew, so that it can be understood without the conversation before it: one request, if there is enough of a
 * conversation. Passages, tools and memories are searched by it, and the model sees it as `[Question]`. What was asked stays as it
 * is, also in memory.
 */
export const rewriteQuestion = (options: RewriteQuestionOptions = {}): Layer => {
  checkOptions('rewriteQuestion()', options, { ...planningRules, above: wholeNumber(0) });
  const { above = 3, prompt = rewriteQuestionPrompt, maxTokens = 500, model } = options;
  const { name: phase = 'rewriteQuestion' } = options;
  return {
    name: phase,
    priority: 78,
    call: (context) => (next) => (call) => {
      const { history, input, toolkit } = call;
      const asked = input.map(textOf).join('\n').trim();
      const isCut = context.interruption.current !== undefined;
      if (!isOpen(call) || isCut || asked === '' || history.length <= above) return next(call);
      const view = { tools: toolkit.current.declarations, messages: history, iteration: 0 };
      const conversation = transcriptOf(history.slice(-shown)).join('');
      const material = `${conversation}\nWhat the user says next:\n${entry('user', asked)}`;
      const request = {
        system: writtenPrompt(prompt, view),
        maxTokens,
        messages: [instruction(context.call.callId, phase, material)],
      };
      const warning = (why: string): string => `The question is taken as it was asked: ${why}`;
      const said$ = consultInCall$(context, call, {
        phase,
        position: phase,
        request,
        model,
        warning,
      });
      return said$.pipe(
        concatMap((said) => {
          const charged = charge(call, phase, said.usage);
          if (said.status !== 'answered' || said.text === asked) return next(charged);
          if (said.isCutShort || said.text.length > most) {
            const message = warning('what the model made of it is too long.');
            context.hooks.report(0, { type: 'warning', message });
            return next(charged);
          }
          const meant = `What is asked last means: ${said.text}`;
          return next(addNote(withQuestion(charged, said.text), 'Question', meant));
        }),
      );
    },
  };
};
