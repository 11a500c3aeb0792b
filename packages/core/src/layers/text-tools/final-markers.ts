import { concatMap, defer, type OperatorFunction } from 'rxjs';
import type { AgentEvent } from '../../events.js';
import { textOf } from '../../values/message.js';
import { type CallsHeard, heard } from '../../operators/event-operators.js';
import { isAnswerDelta } from '../../operators/bounded.js';

export const finalMarks = ['<__final_answer__>', '</__final_answer__>'] as const;

/**
 * Writes what calls think and answer as one text, for consumers that tell the answer by marks: thoughts as they are, and the text of each
 * message between `<__final_answer__>` and `</__final_answer__>`, while they arrive. A message that is taken back, or that asks for tools as
 * well, leaves its marks: the last pair is the answer. Of several calls at once, group them with `byCall()` before. Ends as the events do.
 */
export const finalMarkers = (options?: CallsHeard): OperatorFunction<AgentEvent, string> => {
  const [begins, ends] = finalMarks;
  const own = heard('finalMarkers()', options);
  return (event$) =>
    defer(() => {
      let open: string | undefined;
      let shown: string | undefined;
      let answer = '';
      let thought: string | undefined;
      const close = (): readonly string[] => {
        const isOpen = open !== undefined;
        open = undefined;
        return isOpen ? [ends] : [];
      };
      const textsOf = (event: AgentEvent): readonly string[] => {
        if (isAnswerDelta(event)) {
          const { kind, messageId, delta } = event;
          if (kind === 'thinking') {
            const isNext = thought !== undefined && thought !== messageId;
            thought = messageId;
            return [...close(), ...(isNext ? ['\n\n'] : []), delta];
          }
          if (kind !== 'text') return [];
          const before = open === messageId ? [] : [...close(), begins];
          answer = shown === messageId ? answer + delta : delta;
          open = messageId;
          shown = messageId;
          return [...before, delta];
        }
        switch (event.type) {
          case 'postReasoning':
          case 'postSummary':
          case 'messageDiscarded':
          case 'error':
            return close();
          case 'postCall': {
            const { id, content } = event.reply;
            const said = textOf({ content });
            const text = id === shown && said === answer ? '' : said;
            return [...close(), ...(text === '' ? [] : [begins, text, ends])];
          }
          default:
            return [];
        }
      };
      return event$.pipe(own, concatMap(textsOf));
    });
};
