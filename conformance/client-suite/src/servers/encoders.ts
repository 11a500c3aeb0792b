import { isMillraceError } from 'millrace';
import { sessions } from 'millrace/sessions';
import { inputOfUiMessages, uiMessageStreamResponse } from '@millrace/server';
import { Hono } from 'hono';
import { agent } from './agent.js';

const chats = sessions(agent, { onBusy: 'queue' });
export const app = new Hono();
app.post('/api/chat', async ({ req }) => {
  const { input, chatId, ...message } = inputOfUiMessages(await req.json());
  const chat = chats.open(chatId);
  return uiMessageStreamResponse((demand) => chat.stream$(input, { demand }), message);
});
app.onError((error, context) =>
  isMillraceError(error) && error.status === 400
    ? context.json({ error: error.userMessage }, 400)
    : context.json({ error: 'Something went wrong.' }, 500),
);
