import { type ChangeEvent, useSyncExternalStore } from 'react'
import { changeConnection, readConnection, watchConnection } from './connection.ts'
import { FIELD, Labelled } from './labelled.tsx'

/** Where to send to, and as whom: what is entered in one form stands in all of them. */
export function ConnectionFields({ baseUrl, needsToken }: { baseUrl: string; needsToken: boolean }) {
  const connection = useSyncExternalStore(watchConnection, readConnection, readConnection)
  const change = (name: 'baseUrl' | 'token') => (event: ChangeEvent<HTMLInputElement>) =>
    changeConnection({ [name]: event.target.value.trim() })
  return (
    <>
      <Labelled name="Base address">
        {(id) => (
          <input
            id={id}
            className={FIELD}
            type="url"
            required
            spellCheck={false}
            value={connection.baseUrl ?? baseUrl}
            onChange={change('baseUrl')}
          />
        )}
      </Labelled>
      {needsToken && (
        <Labelled name="Bearer token" note="kept for this page alone">
          {(id) => (
            <input
              id={id}
              className={FIELD}
              type="password"
              autoComplete="off"
              spellCheck={false}
              value={connection.token}
              onChange={change('token')}
            />
          )}
        </Labelled>
      )}
    </>
  )
}
