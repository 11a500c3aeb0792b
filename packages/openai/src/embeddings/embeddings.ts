import { type Embedder, MillraceError, type ModelContext, openDemand, type Usage } from 'millrace';
import { isFunction, isRecord, oneOf, type Rule, wholeNumber } from 'millrace/values';
import {
  checkModelCall,
  countAt,
  type JsonRecord,
  vendorModel,
  type VendorSettings,
} from '@millrace/wire';
import {
  asyncScheduler,
  concat,
  concatMap,
  defer,
  from,
  ignoreElements,
  type Observable,
  of,
  reduce,
} from 'rxjs';
import { accessOf, serverOf } from '../access.js';
import { createRequests } from '../client.js';
import { chatRules, type EndpointOptions } from '../options.js';
import { exampleOf, type Profile } from '../profile.js';
import { checkProfile } from '../profile-rules.js';

/** Options of an embedding model. `baseURL` ends with `/v1`. */
export interface EmbeddingsOptions
  extends VendorSettings, Pick<EndpointOptions, 'organization' | 'project' | 'body'> {
  /** The length of the vectors, for models that can shorten them. Default: that of the model. */
  readonly dimensions?: number | undefined;
  /**
   * The encoding of vectors in the response: `base64` takes a quarter of the bytes, but not every server supports it.
   * Either is read. Default: that of the server, usually `float`.
   */
  readonly encoding?: 'base64' | 'float' | undefined;
  /** Maximum number of texts per request. Default: 96. */
  readonly batchSize?: number | undefined;
  /**
   * Maximum number of tokens per request, estimated at three bytes each. A longer text has a request of its own. Default:
   * 100,000.
   */
  readonly batchTokens?: number | undefined;
  /** Called with the usage of each request, if the server reports it. */
  readonly onUsage?: ((usage: Pick<Usage, 'inputTokens'>) => void) | undefined;
}

/** An embedder whose vectors can be stored: `id` names the model and the dimensions, so indexes do not mix vectors. */
export interface EmbeddingModel extends Embedder {
  readonly id: string;
}

const rules: Readonly<Record<keyof EmbeddingsOptions, Rule>> = {
  ...chatRules,
  dimensions: wholeNumber(1),
  encoding: oneOf('base64', 'float'),
  batchSize: wholeNumber(1),
  batchTokens: wholeNumber(1),
  onUsage: isFunction,
};

/**
 * Creates an embedder that uses the Embeddings API of a vendor: `embeddings(profiles.openai, 'text-embedding-3-small')`.
 * Requests have the transport, the time-outs and the retries of a model. Batches are sent one after the other, and all
 * vectors are emitted once; unsubscribing aborts. Errors as a model does, and with `invalidResponse` if the vectors do
 * not fit the texts. Throws a `MillraceError` (`config`) if the name is missing.
 */
export const embeddings = (
  profile: Profile,
  model: string,
  options: EmbeddingsOptions = {},
): EmbeddingModel => {
  checkProfile(profile);
  const example = exampleOf(profile, 'text-embedding-3-small');
  checkModelCall({ vendor: profile.name, example, model, options, rules });
  const { dimensions, encoding, body, onUsage } = options;
  const access = accessOf(profile, options);
  const requests = createRequests(profile, access, '/embeddings', options);
  const server = serverOf(profile, access.baseURL);
  const fields = {
    model,
    ...(dimensions === undefined ? {} : { dimensions }),
    ...(encoding === undefined ? {} : { encoding_format: encoding }),
  };
  // A server that changes the length of its vectors has changed its model.
  let length = dimensions;
  const batch$ = (texts: readonly string[]): Observable<readonly Vector[]> =>
    defer(() => {
      let answer: Answer = { vectors: [] };
      const request = JSON.stringify({ ...fields, input: texts.map(sendable), ...body });
      const readWhole = (data: unknown): readonly Finish[] => {
        answer = answerIn(server, data, texts.length, length);
        return finish;
      };
      const asked = vendorModel(
        {
          name: model,
          exchange: () => ({
            vendor: server,
            ...requests(request),
            read: () => {
              throw invalid(server, 'a stream');
            },
            readWhole,
          }),
        },
        options,
      );
      return concat(
        asked.stream$({ messages: [] }, context).pipe(ignoreElements()),
        defer(() => {
          const { vectors, inputTokens } = answer;
          length = vectors[0]?.length;
          if (inputTokens !== undefined) onUsage?.({ inputTokens });
          return of(vectors);
        }),
      );
    });
  return {
    id: dimensions === undefined ? model : `${model}/${dimensions}`,
    embed$: (texts) =>
      from(batchesOf(texts, options)).pipe(
        concatMap(batch$),
        reduce<readonly Vector[], readonly Vector[]>((all, some) => [...all, ...some], []),
      ),
  };
};

type Vector = readonly number[];
type Finish = (typeof finish)[number];

/** The vectors leave the reader beside its chunks, which are those of a model. */
const finish = [{ type: 'finish', finish: 'stop' }] as const;

const context: ModelContext = {
  demand: openDemand,
  scheduler: asyncScheduler,
  report: () => undefined,
  stepId: 'embeddings',
  random: Math.random,
};

/** OpenAI rejects an empty string. */
const sendable = (text: string): string => (text === '' ? ' ' : text);

const bytesPerToken = 3;

const batchesOf = (
  texts: readonly string[],
  { batchSize = 96, batchTokens = 100_000 }: EmbeddingsOptions,
): readonly (readonly string[])[] => {
  const batches: string[][] = [];
  let left = 0;
  for (const text of texts) {
    // An empty text is sent as a space.
    const tokens = Math.max(1, Math.ceil(new TextEncoder().encode(text).length / bytesPerToken));
    const last = batches.at(-1);
    if (last === undefined || last.length >= batchSize || tokens > left) {
      batches.push([text]);
      left = batchTokens - tokens;
    } else {
      last.push(text);
      left -= tokens;
    }
  }
  return batches;
};

// ---------------------------------------------------------------- the answer

interface Answer {
  readonly vectors: readonly Vector[];
  readonly inputTokens?: number | undefined;
}

const answerIn = (
  server: string,
  body: unknown,
  count: number,
  length: number | undefined,
): Answer => {
  const items: unknown = isRecord(body) ? body['data'] : undefined;
  if (!isRecord(body) || !Array.isArray(items)) throw invalid(server, 'no list of vectors');
  if (items.length !== count) {
    throw invalid(server, `${items.length} vectors for ${count} texts`);
  }
  const vectors = inOrder(server, items).map((item) => vectorIn(server, item['embedding']));
  const wanted = length ?? vectors[0]?.length;
  const other = vectors.find((vector) => vector.length !== wanted || vector.length === 0);
  if (other !== undefined) {
    throw invalid(server, `a vector of ${other.length} dimensions instead of ${wanted ?? 0}`);
  }
  return { vectors, inputTokens: countAt(body['usage'], 'prompt_tokens') };
};

/** By `index`; without it, in the order of the answer. */
const inOrder = (server: string, items: readonly unknown[]): readonly JsonRecord[] => {
  const sorted: JsonRecord[] = [];
  for (const [position, item] of items.entries()) {
    if (!isRecord(item)) throw invalid(server, 'something that is not a vector');
    const { index = position } = item;
    if (typeof index !== 'number' || !(index in items) || sorted[index] !== undefined) {
      throw invalid(server, `a vector with the index ${String(index).slice(0, 20)}`);
    }
    sorted[index] = item;
  }
  return sorted;
};

const vectorIn = (server: string, embedding: unknown): Vector => {
  const values = typeof embedding === 'string' ? decoded(embedding) : embedding;
  if (Array.isArray(values) && values.every(isFinite)) return values;
  throw invalid(server, 'a vector that is not a list of numbers');
};

const isFinite = (value: unknown): value is number => Number.isFinite(value);

/** Base64 of 32-bit floats, little-endian. */
const decoded = (text: string): Vector | undefined => {
  if (!/^[\w+/]*={0,2}$/u.test(text)) return undefined;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  if (bytes.length % 4 !== 0) return undefined;
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 4 }, (_, at) => view.getFloat32(4 * at, true));
};

const invalid = (server: string, what: string): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `${server} answered with ${what}. Check that it is an embedding model.`,
  );
