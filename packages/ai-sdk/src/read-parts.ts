import {
  type ContentBlock,
  MillraceError,
  type ModelChunk,
  type ModelContext,
  type VendorFacts,
} from 'millrace';
import { isRecord } from 'millrace/values';
import { at, failure, faultOf, type JsonRecord, listAt, textAt } from '@millrace/wire';
import { createAnswerEnd, isFinishPart } from './answer-end.js';
import { createOpenTexts } from './open-texts.js';
import { refusalIn, unparsedCall } from './openai-events.js';
import { finishFacts, responseFacts, usageChunks } from './read-usage.js';
import { createToolInputs, type RequestTools } from './tool-inputs.js';
import type { VendorPartKind } from './vendor-parts.js';

type Chunks = readonly ModelChunk[];

interface ReaderSource extends Pick<ModelContext, 'report' | 'working'>, RequestTools {
  /** The name of the provider. */
  readonly vendor: string;
}

export interface PartReader {
  /** Takes the headers of the response: they explain an answer without events. */
  readonly open: (headers: unknown) => void;
  /** The chunks of a part. After one that `failureIn` finds a failure in, only usage and facts count. */
  readonly read: (part: unknown) => Chunks;
  /** Takes the failure of the stream or the request. It counts unless the answer has ended. */
  readonly fail: (thrown: unknown) => void;
  /** Whether there was a finish part, or a failure. */
  readonly isOver: () => boolean;
  /** The chunks at the end of the stream. Throws the failure of a part, or `invalidResponse` if the answer is incomplete. */
  readonly end: () => Chunks;
}

/**
 * Creates the reader of the parts of one answer. Deltas are a preview: a whole `tool-call` part decides which tool is called, with
 * which arguments and who runs it, and the finish part on the usage and on whether the answer is complete. Unknown parts are ignored.
 */
export const createPartReader = ({
  vendor,
  report,
  working,
  ...tools
}: ReaderSource): PartReader => {
  const texts = createOpenTexts(vendor);
  const inputs = createToolInputs(vendor, tools);
  const answerEnd = createAnswerEnd(vendor);
  /** Tools that the provider runs. */
  const running = new Map<string, string>();
  const other = (chunks: Chunks): Chunks => {
    texts.other();
    return chunks;
  };
  const vendorBlock = (kind: VendorPartKind, data: unknown): Chunks =>
    other([{ type: 'block', block: { type: 'vendor', vendor, kind, data } }]);

  const toolCall = (part: JsonRecord): Chunks => {
    const chunks = inputs.call(part);
    if (chunks === undefined) return [];
    if (part['providerExecuted'] !== true) return other(chunks);
    running.set(textAt(part, 'toolCallId'), textAt(part, 'toolName'));
    return [...chunks, ...vendorBlock('tool-call', { ...plain(part), input: inputIn(part) })];
  };
  const toolResult = (part: JsonRecord): Chunks => {
    if (part['preliminary'] === true) return [];
    running.delete(textAt(part, 'toolCallId'));
    return vendorBlock('tool-result', plain(part));
  };
  const file = (part: JsonRecord): Chunks => {
    const block = fileBlock(part);
    if (block === undefined) return [];
    const { providerMetadata } = part;
    const chunks = other([{ type: 'block', block }]);
    return isRecord(providerMetadata)
      ? [...chunks, ...vendorBlock('file-metadata', providerMetadata)]
      : chunks;
  };
  const works = (): Chunks => {
    const tool = [...running.values()].at(-1) ?? inputs.unseen();
    const on = tool ?? (texts.isThinking() ? 'reasoning' : undefined);
    if (on !== undefined) working?.(on);
    return [];
  };

  const read = (part: JsonRecord): Chunks => {
    switch (part['type']) {
      case 'stream-start':
        listAt(part, 'warnings').forEach((it) =>
          report({ type: 'warning', message: warningOf(vendor, it) }),
        );
        return [];
      case 'response-metadata':
        return factsChunks({ name: vendor, ...responseFacts(part) });
      case 'text-start':
        return texts.start('text', part);
      case 'text-delta':
        return texts.delta('text', part);
      case 'text-end':
        return texts.end('text', part);
      case 'reasoning-start':
        return [...texts.start('thinking', part), ...works()];
      case 'reasoning-delta':
        return texts.delta('thinking', part);
      case 'reasoning-end':
        return texts.end('thinking', part);
      case 'tool-input-start':
        return other(inputs.start(part));
      case 'tool-input-delta':
        return [...inputs.delta(part), ...works()];
      case 'tool-call':
        return toolCall(part);
      case 'tool-result':
        return [...toolResult(part), ...works()];
      case 'tool-approval-request':
        throw askedForApproval(vendor);
      case 'source':
        texts.source(part);
        return [];
      case 'file':
        return file(part);
      case 'reasoning-file':
        return vendorBlock('reasoning-file', plainFile(part));
      case 'custom':
        return vendorBlock('custom', plain(part));
      case 'ping':
        return works();
      case 'raw':
        return works();
      case 'finish':
        // An answer that fails at its end also has a cost.
        return [...usageChunks(part['usage']), ...factsChunks(finishFacts(part))];
      default:
        return [];
    }
  };

  /** The content so far: all but a withdrawn preview is emitted again. */
  const content: ModelChunk[] = [];
  const kept = (chunks: Chunks): Chunks => {
    content.push(...chunks.filter(({ type }) => !reports.has(type)));
    return chunks;
  };
  let failed: ReturnType<typeof failureIn>;
  /** The end of an answer that failed, and counts all the same. */
  let unparsed: Chunks = [];
  const refusals: string[] = [];
  const note = (part: JsonRecord): void => {
    failed ??= failureIn(vendor, part);
    const event = part['type'] === 'raw' ? part['rawValue'] : undefined;
    const delta = failed === undefined ? refusalIn(event) : '';
    if (delta !== '') refusals.push(delta);
    if (failed !== undefined && unparsed.length === 0) {
      unparsed = unparsedCall(event ?? part['error']);
    }
  };
  const refused = (): Chunks => {
    const refusal = refusals.join('');
    const text = content.map((it) => (it.type === 'text' ? it.text : '')).join('');
    // A package may read it as text.
    return text.includes(refusal) ? [] : [{ type: 'text', text: refusal }];
  };
  const isOver = (): boolean => failed !== undefined || answerEnd.isFinished();
  return {
    open: (headers) => answerEnd.open(headers),
    read: (part) => {
      if (!isRecord(part)) return [];
      note(part);
      if (failed !== undefined && !isFinishPart(part)) return [];
      const chunks = read(part);
      answerEnd.note(part, chunks);
      return kept(chunks);
    },
    isOver,
    fail: (thrown) => {
      if (isOver()) return;
      failed = { thrown };
      unparsed = unparsedCall(thrown);
    },
    end: () => {
      if (unparsed.length > 0)
        return content.some(isToolCall) ? [failedCall, ...unparsed] : unparsed;
      if (failed !== undefined) throw failed.thrown;
      const ended = answerEnd.close(inputs.missing());
      const last = kept(texts.close());
      const closing = refusals.length > 0 ? [...refused(), refusal] : ended;
      if (!content.some(inputs.isWithdrawn)) return [...last, ...closing];
      return [restart, ...content.filter((it) => !inputs.isWithdrawn(it)), ...closing];
    },
  };
};

const reports: ReadonlySet<ModelChunk['type']> = new Set(['usage', 'facts']);

const restart: ModelChunk = {
  type: 'restart',
  why: 'The answer does not contain a tool call that was announced.',
  isSameRequest: true,
};

const failedCall: ModelChunk = {
  type: 'restart',
  why: 'A tool call in the answer cannot be parsed.',
  isSameRequest: true,
};

const refusal: ModelChunk = { type: 'finish', finish: 'refusal' };

const isToolCall = ({ type }: ModelChunk): boolean => type === 'toolCall';

const factsChunks = (facts: VendorFacts): Chunks =>
  Object.keys(facts).length === 0 ? [] : [{ type: 'facts', facts }];

/**
 * The failure in a part: in an error part, which is mapped as anything else that a provider throws, or in an event of the vendor, at its
 * top or in one of its choices. Several packages read a choice without it: a gateway whose provider fails in the middle would end a
 * half answer. The usage comes later, in the finish part.
 */
export const failureIn = (
  vendor: string,
  part: unknown,
): { readonly thrown: unknown } | undefined => {
  const type = at(part, 'type');
  if (type === 'error') {
    const thrown = at(part, 'error');
    return isEmptyEvent(thrown) ? undefined : { thrown };
  }
  if (type !== 'raw') return undefined;
  const event = at(part, 'rawValue');
  const fault = faultOf(event) ?? listAt(event, 'choices').map(faultOfChoice).find(isRecord);
  return fault && { thrown: failure(vendor, fault) };
};

/** Whether a package refused an event that cannot have content. The end of the answer decides whether it is complete. */
const isEmptyEvent = (thrown: unknown): boolean =>
  isRecord(thrown) && thrown['name'] === 'AI_TypeValidationError' && isEmpty(thrown['value']);

const isEmpty = (event: unknown): boolean =>
  Array.isArray(event) ? event.length === 0 : !isRecord(event);

const faultOfChoice = (choice: unknown): ReturnType<typeof faultOf> =>
  faultOf({ error: at(choice, 'error') });

/** Parts of providers are plain JSON but for dates and bytes. */
const plain = ({ type: _, ...fields }: JsonRecord): JsonRecord => fields;

const plainFile = (part: JsonRecord): JsonRecord => {
  const { data } = part;
  const inner = at(data, 'data');
  if (inner instanceof Uint8Array)
    return { ...plain(part), data: { type: 'data', data: base64(inner) } };
  const url = at(data, 'url');
  return { ...plain(part), data: url instanceof URL ? { type: 'url', url: url.href } : data };
};

const inputIn = ({ input }: JsonRecord): unknown => {
  if (typeof input !== 'string') return input ?? {};
  try {
    return JSON.parse(input === '' ? '{}' : input);
  } catch {
    return { input };
  }
};

const fileBlock = (part: JsonRecord): ContentBlock | undefined => {
  const mediaType = textAt(part, 'mediaType') || 'application/octet-stream';
  const source = sourceIn(part['data'], mediaType);
  if (source === undefined) return undefined;
  const [top] = mediaType.split('/');
  return { type: top === 'image' || top === 'audio' ? top : 'file', source };
};

const sourceIn = (
  data: unknown,
  mediaType: string,
): ContentBlock extends infer Block
  ? Block extends { readonly source: infer Source }
    ? Source | undefined
    : never
  : never => {
  if (typeof data === 'string') return { kind: 'base64', mediaType, data };
  if (data instanceof Uint8Array) return { kind: 'base64', mediaType, data: base64(data) };
  const url = at(data, 'url');
  if (url instanceof URL) return { kind: 'url', mediaType, url: url.href };
  const inner = at(data, 'data');
  return inner === undefined || isRecord(inner) ? undefined : sourceIn(inner, mediaType);
};

const base64 = (bytes: Uint8Array): string => {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
};

const warningOf = (vendor: string, warning: unknown): string => {
  const what = textAt(warning, 'feature') || textAt(warning, 'setting');
  const details = textAt(warning, 'details') || textAt(warning, 'message');
  const kind = textAt(warning, 'type');
  const head = what === '' ? vendor : `${vendor}: '${what}' is ${kinds.get(kind) ?? kind}`;
  return details === '' ? `${head}.` : `${head}: ${details}`;
};

const kinds: ReadonlyMap<string, string> = new Map([
  ['unsupported', 'not supported'],
  ['compatibility', 'supported in a compatible form only'],
  ['deprecated', 'deprecated'],
]);

const askedForApproval = (vendor: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `${vendor} asks for approval of a tool that it runs itself. Configure that tool to need no approval, or use it as a tool of the agent with 'requireApproval'.`,
  );
