// The program of a thread: converts the HTML in its `workerData`, posts the article, and ends.
import { parentPort, workerData } from 'node:worker_threads';
import { isRecord } from 'millrace/values';
import { toMarkdown } from './to-markdown.js';

const given: unknown = workerData;
if (isRecord(given))
  parentPort?.postMessage(toMarkdown(String(given['html']), String(given['url'])));
