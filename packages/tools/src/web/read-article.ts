import { Worker } from 'node:worker_threads';
import { isRecord, untrustedText } from 'millrace/values';
import { defer, map, Observable, of } from 'rxjs';
import { decodeAs, isKnown, markOf } from '../documents/decode.js';
import { type Fetched, mediaType } from './guarded-get.js';
import type { Article } from './to-markdown.js';

/** Throws an error that names the type of a response if its body is not text. */
export const checkType = (type: string): void => {
  if (isHtml(type) || isPlain(type)) return;
  const given = type === '' ? 'without a type' : `of the type '${type.slice(0, 100)}'`;
  throw new Error(`The response is ${given}. Only HTML, text, JSON and XML can be read.`);
};

const isHtml = (type: string): boolean => type === 'text/html' || type === 'application/xhtml+xml';

const isPlain = (type: string): boolean =>
  /^text\/|^application\/(?:json|xml|javascript|yaml|x-ndjson)$|\+(?:json|xml)$/u.test(type);

/** Emits the text of a response, cleaned, and completes. HTML is converted to Markdown; other text has no title. */
export const article$ = (fetched: Fetched): Observable<Article> =>
  defer(() => {
    const isDocument = isHtml(mediaType(fetched.contentType));
    const text = decoded(fetched, isDocument);
    const content$ = isDocument ? markdown$(text, fetched.url.href) : of({ title: '', text });
    return content$.pipe(map(cleaned));
  });

const cleaned = ({ title, text }: Article): Article => ({
  title: untrustedText(title.replace(/\s+/gu, ' ')),
  text: untrustedText(text),
});

// ---------------------------------------------------------------- charset

const decoded = ({ body, contentType }: Fetched, isDocument: boolean): string => {
  const charset = markOf(body) ?? charsetIn(contentType) ?? declaredIn(body, isDocument);
  if (charset !== undefined && !isKnown(charset)) {
    throw new Error(`The response has the charset '${charset}', which is not supported.`);
  }
  return decodeAs(charset, body);
};

const charsetIn = (declaration: string): string | undefined =>
  /charset\s*=\s*["']?([^\s"';,>]{1,40})/iu.exec(declaration)?.[1];

/** Reads `<meta charset>` and the declaration of XML, which the first 1,024 bytes must contain. */
const declaredIn = (body: Uint8Array, isDocument: boolean): string | undefined => {
  const start = new TextDecoder('latin1').decode(body.subarray(0, 1_024));
  const xml = /^\s*<\?xml[^>]*encoding\s*=\s*["']([^"']{1,40})/iu.exec(start)?.[1];
  return (
    xml ?? (isDocument ? charsetIn(/<meta[^>]*charset[^>]*/iu.exec(start)?.[0] ?? '') : undefined)
  );
};

// ---------------------------------------------------------------- the thread

/**
 * Converts HTML in a thread, because hostile HTML takes seconds and much memory. Unsubscribing ends the thread. The
 * path leads to the bundle from the sources as well: both are two levels below the package.
 */
const markdown$ = (html: string, url: string): Observable<Article> =>
  new Observable((subscriber) => {
    const thread = new Worker(new URL('../../dist/bundle/to-markdown.worker.js', import.meta.url), {
      workerData: { html, url },
      resourceLimits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 64, stackSizeMb: 4 },
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
    });
    const fail = (): void =>
      subscriber.error(new Error('The HTML of the response cannot be converted.'));
    thread.once('error', fail);
    thread.once('exit', fail);
    thread.once('message', (article: unknown) => {
      if (isArticle(article)) subscriber.next(article);
      subscriber.complete();
    });
    return () => void thread.terminate();
  });

const isArticle = (value: unknown): value is Article =>
  isRecord(value) && typeof value['title'] === 'string' && typeof value['text'] === 'string';
