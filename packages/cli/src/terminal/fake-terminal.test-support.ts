import { PassThrough, type Readable, Writable } from 'node:stream';
import { NEVER } from 'rxjs';
import type { Environment } from '../environment.js';

/** An output that keeps what is written to it. */
export interface FakeOutput {
  readonly stream: Writable;
  readonly text: () => string;
}

/** Makes an output; `onWrite` is called with each text. */
export const fakeOutput = (onWrite: (text: string) => void = () => undefined): FakeOutput => {
  const texts: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      texts.push(text);
      onWrite(text);
      done();
    },
  });
  return { stream, text: () => texts.join('') };
};

/** An input that holds a text, and ends. */
export const fakeInput = (text = ''): Readable => new PassThrough().end(text);

/** A world for `main`, outside of any terminal, and what it wrote there. */
export const fakeEnvironment = (
  argv: readonly string[],
  environment: Partial<Environment> = {},
): { readonly environment: Environment; readonly out: FakeOutput; readonly err: FakeOutput } => {
  const out = fakeOutput();
  const err = fakeOutput();
  return {
    out,
    err,
    environment: {
      argv,
      stdin: fakeInput(),
      stdout: out.stream,
      stderr: err.stream,
      env: {},
      platform: 'linux',
      directory: process.cwd(),
      interrupt$: NEVER,
      ...environment,
    },
  };
};
