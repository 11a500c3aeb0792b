import { type AgentEvent, isEvent, textOf } from 'millrace';
import { checkOptions, isFlag } from 'millrace/values';
import { concatMap, defer, filter, type OperatorFunction } from 'rxjs';

export const finalMarks = ['<__final_answer__>', '</__final_answer__>'] as const;

/** The options of `finalMarkers`. */
export interface FinalMarkersOptions {
  /** Whether to include sub-agents at any depth. Default: false. */
  readonly subAgents?: boolean | undefined;
}

/**
 * Merges thoughts and answers of calls into one text stream, for consumers that find the answer by markers: the text of
 * each message is put between `<__final_answer__>` and `</__final_answer__>` as it streams. A discarded message, or one
 * with tool calls, keeps its markers: the last pair is the answer. Group concurrent calls with `byCall()` before.
 * Completes with the events.
 */
export const finalMarkers = (
  options: FinalMarkersOptions = {},
): OperatorFunction<AgentEvent, string> => {
  const [begins, ends] = finalMarks;
  checkOptions('finalMarkers()', options, { subAgents: isFlag });
  const { subAgents = false } = options;
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
        if (isEvent(event, 'reasoningChunk', 'summaryChunk')) {
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
            const replyText = textOf({ content });
            const text = id === shown && replyText === answer ? '' : replyText;
            return [...close(), ...(text === '' ? [] : [begins, text, ends])];
          }
          default:
            return [];
        }
      };
      return event$.pipe(
        filter(({ parentId }) => subAgents || parentId === undefined),
        concatMap(textsOf),
      );
    });
};
