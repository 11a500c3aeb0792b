// The program of a thread: converts the files that it gets to text, one after the other.
import { parentPort } from 'node:worker_threads';
import { isRecord } from 'millrace/values';
import { decodeText } from './decode.js';
import { toMarkdown } from '../web/to-markdown.js';

const pdfText = async (bytes: Uint8Array) => {
  const { extractText, getDocumentProxy } = await import('unpdf').catch(() => {
    throw new Error('reading PDF needs a parser (npm install unpdf)');
  });
  const document = await getDocumentProxy(bytes);
  try {
    const { text } = await extractText(document, { mergePages: false });
    const pages: number[] = [];
    let length = 0;
    for (const page of text) {
      pages.push(length);
      length += page.length + 1;
    }
    return { title: '', text: text.join('\n'), pages };
  } finally {
    await document.destroy();
  }
};

// For a broken file, pdf.js rejects promises that it does not handle, even after the answer. They must not end the thread: the
// next file would be lost, or the error would reach the program.
process.on('unhandledRejection', () => undefined);

parentPort?.on('message', (given: unknown) => {
  const convert = async (): Promise<unknown> => {
    if (!isRecord(given) || !(given['bytes'] instanceof Uint8Array)) return undefined;
    const { bytes, type } = given;
    return type === 'pdf' ? pdfText(bytes) : toMarkdown(decodeText(bytes, true));
  };
  convert().then(
    (result) => parentPort?.postMessage(result),
    (error: unknown) =>
      parentPort?.postMessage({ message: error instanceof Error ? error.message : undefined }),
  );
});
