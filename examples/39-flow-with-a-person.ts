// A flow that writes until a check passes, asks a person, sends a request, and handles its error: a JSON document.
import { readFileSync } from 'node:fs';
import { textOf } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { flowAgent, livePicture } from '@millrace/flow';
import { lastValueFrom } from 'rxjs';

const document: unknown = JSON.parse(
  readFileSync(new URL('../39-flow-with-a-person.json', import.meta.url), 'utf8'),
);
const letter = [text('Dear Ann, we grind rye on Monday.')];
const statuses = [200, 503];
const letters = flowAgent(document, {
  models: { small: scriptedModel([text('We grind rye.')], letter, letter) },
  secrets: { MAIL_KEY: 'k-1234' },
  // In production: { fetch: guardedFetch() } of @millrace/tools/web.
  http: {
    fetch: (url, { method, headers, body = '' }) => {
      console.log(`  ${method} ${url} ${headers['authorization'] ?? ''} ${body}`);
      return Promise.resolve(new Response('{"id":7}', { status: statuses.shift() ?? 200 }));
    },
  },
  // Asks in your user interface; a Promise or an Observable may wait for days.
  human: ({ message, choices = [] }) => {
    console.log(`  ${message} (${choices.join(' / ')})`);
    return 'send';
  },
});
console.log(textOf(await letters.call('When do you grind?')));

const pictures$ = letters.stream$('And now?').pipe(livePicture(document));
const classes = (await lastValueFrom(pictures$)).split('\n').filter((it) => it.includes(' class '));
console.log(classes.join('\n'));
