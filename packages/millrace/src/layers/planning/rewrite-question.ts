import { concatMap } from 'rxjs';
import { entry, transcriptOf } from '../../memories/transcript.js';
import { checkOptions, wholeNumber } from '../../values/options.js';
import { addNote, askedText, charge, isOpen, withQuestion } from '../../seams/call.js';
import { consultInCall$, instruction } from '../../phases/consult.js';
import type { Layer } from '../../seams/layer.js';
import type { PlanningOptions } from './planning-options.js';
import { planningRules, rewriteQuestionPrompt, resolvePrompt } from './planning-options.js';
import { layerPlaces } from '../../seams/layer-places.js';

export interface RewriteQuestionOptions extends PlanningOptions {
  /** Minimum length of the history is one more than this. Default: 3. */
  readonly above?: number | undefined;
}

const maxHistory = 12;

const maxLength = 2_000;

/**
 * Creates a layer that rewrites the question so that it can be understood without the conversation: one request, if the
 * history has more than `above` messages. Passages, tools and memories are searched with it, and the model sees it as
 * `[Question]`. The original input stays unchanged, also in memory.
 */
export const rewriteQuestion = (options: RewriteQuestionOptions = {}): Layer => {
  checkOptions('rewriteQuestion()', options, { ...planningRules, above: wholeNumber(0) });
  const { above = 3, prompt = rewriteQuestionPrompt, maxTokens = 500, model } = options;
  const { name: phase = 'rewriteQuestion' } = options;
  return {
    name: phase,
    priority: layerPlaces.rewriteQuestion,
    call: (context) => (next) => (call) => {
      const { history, input, toolkit } = call;
      const question = askedText(input).trim();
      const isCut = context.interruption.current !== undefined;
      if (!isOpen(call) || isCut || question === '' || history.length <= above) return next(call);
      const view = { tools: toolkit.current.declarations, messages: history, iteration: 0 };
      const conversation = transcriptOf(history.slice(-maxHistory)).join('');
      const material = `${conversation}\nThe user's next message:\n${entry('user', question)}`;
      const request = {
        system: resolvePrompt(prompt, view),
        maxTokens,
        messages: [instruction(context.info.callId, phase, material)],
      };
      const warning = (why: string): string => `The question is used unchanged: ${why}`;
      const rewritten$ = consultInCall$(context, call, {
        phase,
        position: phase,
        request,
        model,
        warning,
      });
      return rewritten$.pipe(
        concatMap((rewritten) => {
          const charged = charge(call, phase, rewritten.usage);
          if (rewritten.status !== 'answered' || rewritten.text === question) return next(charged);
          if (rewritten.isCutShort || rewritten.text.length > maxLength) {
            const message = warning('the rewritten question is too long.');
            context.hooks.report(0, { type: 'warning', message });
            return next(charged);
          }
          const meaning = `The last question means: ${rewritten.text}`;
          return next(addNote(withQuestion(charged, rewritten.text), 'Question', meaning));
        }),
      );
    },
  };
};
