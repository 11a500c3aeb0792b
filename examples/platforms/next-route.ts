// Next.js, app/api/chat/route.ts: the route that `useChat` of the AI SDK calls by default.
import { createAgent } from 'millrace';
import { sessions } from 'millrace/sessions';
import { openai } from '@millrace/openai';
import { inputOfUiMessages, uiMessageStreamResponse } from '@millrace/server';
import type { NextRequest } from 'next/server';

// With more than one instance, keep the sessions in a store. Authenticate users before you open their sessions.
const chats = sessions(createAgent({ name: 'helper', model: openai('gpt-5-mini') }));

export const POST = async (request: NextRequest): Promise<Response> => {
  const { input, chatId, ...message } = inputOfUiMessages(await request.json());
  // A client that disconnects cancels the body of the response, which aborts the model request.
  return uiMessageStreamResponse((demand) => {
    return chats.open(chatId).stream$(input, { demand });
  }, message);
};
