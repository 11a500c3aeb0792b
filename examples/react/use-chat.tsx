// A chat with `useChat` of the AI SDK: text, tools, approvals, stop, regenerate, and answers that outlast a reload.
import { useChat } from '@ai-sdk/react';
import {
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';

interface History {
  readonly messages: UIMessage[];
  readonly running?: string;
}

/** Loads the conversation first: `useChat` takes its messages once. */
const Conversation = ({ id }: { readonly id: string }) => {
  const [history, setHistory] = useState<History>();
  useEffect(() => {
    void fetch(`/api/chat/${id}`)
      .then((response): Promise<History> => response.json())
      .then(setHistory);
  }, [id]);
  return history && <Chat id={id} history={history} />;
};

const Chat = ({ id, history }: { readonly id: string; readonly history: History }) => {
  const { messages, sendMessage, regenerate, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: history.messages,
    resume: history.running !== undefined, // joins the running answer
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const [text, setText] = useState('');
  const isBusy = status === 'submitted' || status === 'streaming';
  // The call runs on without a client, so the server stops it. The stream ends with the text so far.
  const stop = () => void fetch(`/api/chat/${id}/stop`, { method: 'POST' });
  const decide = (approvalId: string, approved: boolean) =>
    void addToolApprovalResponse({ id: approvalId, approved });
  return (
    <main>
      <div className="messages">
        {messages.map((message) => (
          <article key={message.id} className={message.role}>
            {message.parts.map((part, at) => (
              <Part key={at} part={part} decide={decide} />
            ))}
          </article>
        ))}
      </div>
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text });
          setText('');
        }}
      >
        <input id="message" value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={isBusy}>Send</button>
      </form>
      {isBusy && <button onClick={stop}>Stop</button>}
      {!isBusy && <button onClick={() => void regenerate()}>Regenerate</button>}
    </main>
  );
};

interface PartProps {
  readonly part: UIMessage['parts'][number];
  readonly decide: (approvalId: string, approved: boolean) => void;
}

const Part = ({ part, decide }: PartProps) => {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (!isToolUIPart(part)) return null;
  const output = part.state === 'output-available' ? JSON.stringify(part.output) : part.errorText;
  return (
    <section aria-label={getToolName(part)}>
      {getToolName(part)} {JSON.stringify(part.input)}: {output ?? part.state}
      {part.state === 'approval-requested' && (
        <>
          <button onClick={() => decide(part.approval.id, true)}>Approve</button>
          <button onClick={() => decide(part.approval.id, false)}>Deny</button>
        </>
      )}
    </section>
  );
};

const page = document.getElementById('page');
if (page) createRoot(page).render(<Conversation id="chat-1" />);
