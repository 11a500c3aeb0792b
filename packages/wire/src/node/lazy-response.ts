import { bodyReader, type BodyReader } from '../body-reader.js';
import {
  buildResponse,
  constructibleHead,
  type ResponseHead,
  withHead,
} from '../build-response.js';
import { webStream } from './web-stream.js';

/** The members of a `Response` that depend on its body. */
const members = [
  'arrayBuffer',
  'blob',
  'body',
  'bodyUsed',
  'bytes',
  'clone',
  'formData',
  'json',
  'text',
];

/**
 * A `Response` that creates its web stream on first access: that is its most expensive part, and `bodyReader` needs
 * none.
 */
export class LazyResponse extends Response {
  readonly #head: ResponseHead;
  readonly #reader: BodyReader;
  #isTaken = false;
  #made: Response | undefined;

  constructor(head: ResponseHead, reader: BodyReader) {
    super(null, constructibleHead(head));
    withHead(this, head);
    this.#head = head;
    this.#reader = reader;
  }

  /** Returns a reader without a web stream. Throws, as a stream does, if the body is locked. */
  [bodyReader](): BodyReader | undefined {
    if (this.#isTaken || this.#made !== undefined) return this.#whole.body?.getReader();
    this.#isTaken = true;
    return this.#reader;
  }

  get #whole(): Response {
    if (this.#made === undefined) {
      this.#made = buildResponse(webStream(this.#reader), this.#head);
      if (this.#isTaken) this.#made.body?.getReader();
    }
    return this.#made;
  }

  static {
    for (const name of members) {
      Object.defineProperty(this.prototype, name, {
        configurable: true,
        get(this: LazyResponse): unknown {
          const whole = this.#whole;
          if (name === 'clone') return () => withHead(whole.clone(), this.#head);
          const member: unknown = Reflect.get(whole, name);
          return typeof member === 'function' ? member.bind(whole) : member;
        },
      });
    }
  }
}
