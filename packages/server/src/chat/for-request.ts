import { type CallInfo, type Layer, MillraceError, type Model } from 'millrace';
import { isRecord } from 'millrace/values';
import {
  defer,
  first,
  from,
  isObservable,
  map,
  type Observable,
  type ObservableInput,
  of,
} from 'rxjs';
import { withInstructions } from '../client-tools.js';

/** A request that begins a call. */
export interface CallRequest {
  readonly request: Request;
  /** The body of the request, which any client can write. */
  readonly body: unknown;
  /** The authenticated user. */
  readonly user?: string;
}

/** Strings about a call, for its tools, its interceptors and `callOptions`. */
export type CallMetadata = Readonly<Record<string, string>>;

/** The metadata and options that each request adds to its call. */
export interface ForRequest {
  /**
   * Returns or emits the `metadata` of a call from its request, such as a field of the body or a header, in addition to
   * the `userId`. Validate it: clients can send anything. It is recorded with the call. Default: none.
   */
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly metadata?: (request: CallRequest) => CallMetadata | ObservableInput<CallMetadata>;
  /** Returns the model of a call and what is added to its instructions, by its metadata. Resumed calls ask again. Default: those of the agent. */
  readonly callOptions?: (metadata: CallMetadata) => {
    readonly model?: Model;
    readonly instructions?: string;
  };
}

/** Emits the metadata of a call from its request. */
export const requestMetadata$ = (
  metadata: ForRequest['metadata'],
  request: CallRequest,
): Observable<CallMetadata> =>
  defer(() => {
    const given = metadata?.(request) ?? {};
    return isInput(given) ? from(given) : of(given);
  }).pipe(
    first(),
    map((given) => {
      if (isMetadata(given)) return given;
      throw new MillraceError('invalidState', "'metadata' must return strings by their names.");
    }),
  );

const isInput = (given: object): given is ObservableInput<CallMetadata> =>
  isObservable(given) ||
  'then' in given ||
  Symbol.iterator in given ||
  Symbol.asyncIterator in given;

const isMetadata = (value: unknown): value is CallMetadata =>
  isRecord(value) && Object.values(value).every((it) => typeof it === 'string');

/** Sets the model of each call, and adds to its instructions. */
export const callOptionsLayer = (callOptions: NonNullable<ForRequest['callOptions']>): Layer => ({
  name: 'callOptions',
  // Runs within `prepare` and `conversation`, which sets the instructions of the agent.
  priority: 61,
  call: (context) => (next) => (call) => {
    const { metadata }: CallInfo = context.info;
    const { model = call.model, instructions } = callOptions(metadata);
    const chosen = { ...call, model };
    return next(instructions === undefined ? chosen : withInstructions(chosen, instructions));
  },
});
