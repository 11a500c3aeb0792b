import { TaskState } from '@a2a-js/sdk';
import { isRecord } from 'millrace/values';
import { dataPart, textPart } from '../parts.js';
import { type Change, into, spoken, still } from './task-updates.js';
import type { TaskView, Waiting } from './task-view.js';

/** Requires input once an approval of the task can be decided. */
export const asked = (view: TaskView): Change => {
  if (view.waiting.some(({ asks }) => asks === 'result')) return still(view);
  const waiting = view.pending.flatMap(
    ({ callId, toolCallId, tool, input, token }): readonly Waiting[] => {
      const id = `${callId}/${toolCallId}`;
      return view.requested.includes(id)
        ? [{ id, tool, asks: 'approval', shown: input, token }]
        : [];
    },
  );
  if (waiting.length === 0 || view.state === TaskState.TASK_STATE_INPUT_REQUIRED)
    return still({ ...view, waiting });
  return waitingFor(view, waiting, waiting[0]?.id ?? '', Date.now());
};

export const waitingFor = (
  view: TaskView,
  waiting: readonly Waiting[],
  id: string,
  at: number,
  ...before: readonly string[]
): Change => {
  const parts = [
    textPart([...before, ...waiting.map(sentenceOf)].join('\n')),
    ...waiting.map(({ id: toolCallId, tool, asks, shown: value }) =>
      dataPart(
        asks === 'result'
          ? { toolCallId, tool, request: value }
          : { toolCallId, tool, input: value, asks: 'approval' },
      ),
    ),
  ];
  const question = spoken(view, 'agent', `${id}/question`, parts);
  const history = [...view.history, question];
  return into(
    { ...view, waiting, history, answered: [] },
    TaskState.TASK_STATE_INPUT_REQUIRED,
    at,
    question,
  );
};

const sentenceOf = ({ tool, asks, shown: request }: Waiting): string => {
  if (asks === 'approval') return `Approve the tool '${tool}'?`;
  if (typeof request === 'string' && request !== '') return request;
  const [question] = ['question', 'message', 'prompt'].flatMap((key) => {
    const value = isRecord(request) && Object.hasOwn(request, key) ? request[key] : undefined;
    return typeof value === 'string' && value !== '' ? [value] : [];
  });
  return question ?? `The tool '${tool}' waits for its result.`;
};
