import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { filePartOf } from './attached-file.js';
import type { Command } from './conversation-state.js';
import { AttachedFiles } from './file.js';
import { ActionsContext, Icon, isSend } from './pieces.js';
import { textPart } from './requests.js';
import type { FilePart } from './ui-message.js';

/** The field for messages. While an answer runs, it adds to that; while a tool waits for the user, a message cancels it. */
export const Composer = (props: {
  readonly isBusy: boolean;
  /** Whether a tool of the running answer waits for approval. */
  readonly isAsked: boolean;
  readonly send: (command: Command) => void;
}) => {
  const { isBusy, isAsked, send } = props;
  const isAdding = isBusy && !isAsked;
  const [text, setText] = useState('');
  const [files, setFiles] = useState<readonly FilePart[]>([]);
  const [problem, setProblem] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isFramed = useContext(ActionsContext)?.tab !== undefined;
  useLayoutEffect(() => {
    // The focus belongs to the site around a frame.
    if (!isFramed) field.current?.focus();
  }, []);
  const submit = () => {
    const written = text.trim();
    if (isAdding && written !== '') send({ type: 'steer', text: written });
    else if (!isAdding && (written !== '' || files.length > 0)) {
      send({ type: 'ask', parts: [...files, ...(written === '' ? [] : [textPart(written)])] });
      setFiles([]);
    } else return;
    setText('');
    field.current?.focus();
  };
  const attach = (list: FileList | undefined | null) => {
    const chosen = [...(list ?? [])];
    if (chosen.length === 0) return;
    setProblem('');
    for (const file of chosen) {
      filePartOf(file).then(
        (part) => setFiles((before) => [...before, part]),
        (error: unknown) =>
          setProblem(error instanceof Error ? error.message : 'It cannot be read.'),
      );
    }
  };
  return (
    <form
      class="composer"
      aria-label="Message"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        attach(event.dataTransfer?.files);
      }}
    >
      <AttachedFiles files={files} change={setFiles} />
      {problem !== '' && (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
      <div class="field">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files"
          onChange={(event) => {
            attach(event.currentTarget.files);
            event.currentTarget.value = '';
          }}
        />
        <button
          type="button"
          class="icon"
          aria-label="Attach files"
          title="Attach files"
          disabled={isAdding}
          onClick={() => picker.current?.click()}
        >
          <Icon name="plus" />
        </button>
        <textarea
          id="message"
          ref={field}
          rows={1}
          aria-label={isAdding ? 'Add to the running answer' : 'Your message'}
          placeholder={isAdding ? 'Add to the running answer …' : 'Your message …'}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onPaste={(event) => attach(event.clipboardData?.files)}
          onKeyDown={(event) => {
            if (!isSend(event)) return;
            event.preventDefault();
            submit();
          }}
        />
        {isBusy && (
          <button type="button" onClick={() => send({ type: 'stop' })}>
            Stop
          </button>
        )}
        {(!isAdding || text.trim() !== '') && (
          <button type="submit" class="primary">
            {isAdding ? 'Add' : 'Send'}
          </button>
        )}
      </div>
    </form>
  );
};
