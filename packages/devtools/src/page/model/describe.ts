// One line about an entry of the log.
import type { Mark } from '../protocol.js';
import { durationText } from './axis.js';
import type { ChunkStream, Entry } from './log.js';
import { deltaOf } from './log.js';
import {
  anyFields,
  errorIn,
  fieldsOf,
  stringOf,
  textIn,
  toolCallIn,
  toolCallsIn,
} from './read-event.js';

export interface Description {
  readonly title: string;
  readonly detail: string;
}

const chunkTitles = { text: 'text', thinking: 'thinking', toolInput: 'tool arguments' } as const;

const maxDetail = 160;

/** A name for an entry, and its content in a few words. */
export const describeEntry = (entry: Entry): Description => {
  switch (entry.type) {
    case 'chunk':
      return {
        title: chunkTitles[entry.stream.head.kind],
        detail: cut(JSON.stringify(deltaOf(entry.stream, entry.index))),
      };
    case 'mark': {
      const { mark } = entry;
      if (mark.mark === 'demand')
        return { title: mark.isOpen ? 'demand open' : 'demand closed', detail: '' };
      const title = `${mark.mark === 'step' ? `step ${mark.kind}` : mark.mark} ${mark.phase}`;
      return { title, detail: detailOfMark(mark) };
    }
    case 'event':
      return { title: entry.event.type, detail: cut(detailOf(anyFields(entry.event))) };
  }
};

const detailOfMark = (mark: Exclude<Mark, { readonly mark: 'demand' }>): string => {
  switch (mark.mark) {
    case 'interceptors':
      return `${mark.of}: ${mark.names.join(', ')}${mark.isEdited === true ? ' (edited)' : ''}`;
    case 'request':
      return mark.model;
    case 'hold':
      return mark.heldMs === undefined
        ? mark.of
        : `${mark.of}, held for ${durationText(mark.heldMs)}`;
    case 'step':
      return mark.id;
  }
};

const detailOf = (event: ReturnType<typeof anyFields>): string => {
  const tool = toolCallIn(event['toolCall']);
  if (event['result'] !== undefined) return `${tool.name} → ${textIn(event['result'])}`;
  if (event['value'] !== undefined) return `${tool.name}: ${JSON.stringify(event['value'])}`;
  if (tool.name !== '') return `${tool.name}(${JSON.stringify(tool.input)})`;
  if (event['error'] !== undefined) {
    const { code, message } = errorIn(event['error']);
    return `${code}: ${message}`;
  }
  if (event['reply'] !== undefined) {
    return `${stringOf(fieldsOf(event['reply'])['reason'])}: ${textIn(event['reply'])}`;
  }
  const { message } = event;
  if (typeof message === 'string') return message;
  if (message !== undefined) {
    return (
      textIn(message) ||
      toolCallsIn(message)
        .map(({ name }) => `${name}(…)`)
        .join(', ')
    );
  }
  const { why, name, step, of } = event;
  return [of, name, why, step].map(stringOf).filter(Boolean).join(' · ');
};

const cut = (text: string): string =>
  text.length > maxDetail ? `${text.slice(0, maxDetail)}…` : text;

/** The agents of an entry, outermost first. */
export const agentOf = (entry: Entry): string => {
  const agent =
    entry.type === 'chunk'
      ? entry.stream.head.agent
      : entry.type === 'event'
        ? entry.event.agent
        : [];
  return agent.join(' › ');
};

/** The joined text of the chunks of a cluster: those of one kind between two positions of a log. */
export const clusterText = (stream: ChunkStream, from: number, to: number): string => {
  const first = stream.positions.indexOf(from);
  const last = stream.positions.findLastIndex((position) => position <= to);
  return first === -1 || last < first
    ? ''
    : stream.text.slice(first === 0 ? 0 : (stream.ends[first - 1] ?? 0), stream.ends[last]);
};
