import { bodyReader, type BodyReader } from '../body-reader.js';
import { possible, type ResponseHead, responseWith, tellingHead } from '../response-with.js';
import { webStream } from './web-stream.js';

/** What of a `Response` needs its body. */
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
 * A `Response` whose body is made when somebody asks for it: a web stream costs more than all the rest of it, and who
 * reads by the `bodyReader` needs none.
 */
export class LateResponse extends Response {
  readonly #head: ResponseHead;
  readonly #reader: BodyReader;
  #isTaken = false;
  #made: Response | undefined;

  constructor(head: ResponseHead, reader: BodyReader) {
    super(null, possible(head));
    tellingHead(this, head);
    this.#head = head;
    this.#reader = reader;
  }

  /** Gives what reads the body for nothing more than it takes. Throws, as a stream does, where somebody else reads it. */
  [bodyReader](): BodyReader | undefined {
    if (this.#isTaken || this.#made !== undefined) return this.#whole.body?.getReader();
    this.#isTaken = true;
    return this.#reader;
  }

  get #whole(): Response {
    if (this.#made === undefined) {
      this.#made = responseWith(webStream(this.#reader), this.#head);
      if (this.#isTaken) this.#made.body?.getReader();
    }
    return this.#made;
  }

  static {
    for (const name of members) {
      Object.defineProperty(this.prototype, name, {
        configurable: true,
        get(this: LateResponse): unknown {
          const whole = this.#whole;
          if (name === 'clone') return () => tellingHead(whole.clone(), this.#head);
          const member: unknown = Reflect.get(whole, name);
          return typeof member === 'function' ? member.bind(whole) : member;
        },
      });
    }
  }
}
