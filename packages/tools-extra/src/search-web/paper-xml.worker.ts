// The program of a thread: reads the XML in its `workerData`, posts the papers, and ends.
import { parentPort, workerData } from 'node:worker_threads';
import { isRecord } from 'millrace/values';
import { papersIn } from './paper-xml.js';

const given: unknown = workerData;
if (isRecord(given)) {
  const source = given['source'] === 'arxiv' ? 'arxiv' : 'pubmed';
  parentPort?.postMessage(papersIn(source, String(given['xml'])));
}
