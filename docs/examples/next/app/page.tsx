'use client'

import { useState } from 'react'
import { runPayroll, type Say } from './payroll'

const SERVICE = 'http://localhost:3000'
const NETWORK = 'http://localhost:8000/deployment.json'

const STEPS = 20

export default function Page() {
  const [steps, setSteps] = useState<{ id: number; step: string; link: string | undefined }[]>([])
  const [isDone, setIsDone] = useState(false)
  const say: Say = (step, link) => setSteps((before) => [...before, { id: before.length, step, link }])
  const pay = () =>
    runPayroll(SERVICE, NETWORK, say).then(
      () => setIsDone(true),
      (error) => say(String(error)),
    )
  return (
    <main style={{ maxWidth: '44rem', margin: '2rem auto', padding: '0 1rem', overflowWrap: 'anywhere' }}>
      <button type="button" onClick={pay}>
        Pay
      </button>
      <progress
        aria-label="Progress"
        value={isDone ? STEPS : steps.length}
        max={STEPS}
        style={{ position: 'sticky', top: '1rem', width: '100%' }}
      />
      <ol aria-label="Steps" aria-live="polite">
        {steps.map(({ id, step, link }) => (
          <li key={id}>
            {step}
            {link && (
              <>
                : <a href={link}>{link}</a>
              </>
            )}
          </li>
        ))}
      </ol>
    </main>
  )
}
