import { setDefaultHighWaterMark } from 'node:stream';
import { sendResult } from '../send-result.js';
import { takeSlowly } from './take-slowly.js';
import { wayNames } from './ways.js';

// Asked with the options of `takeInChild`, in this order.
const [url = '', shortUrl = '', name = '', bytes, waitMs, bufferBytes] = process.argv.slice(2);
const way = wayNames.find((known) => known === name);
if (way === undefined) throw new Error(`There is no way '${name}'.`);
setDefaultHighWaterMark(false, Number(bufferBytes));
sendResult(await takeSlowly({ url, shortUrl, way, bytes: Number(bytes), waitMs: Number(waitMs) }));
