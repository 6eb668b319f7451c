'use client'

import { useState } from 'react'
import { runPayroll } from './payroll'

const SERVICE = 'http://localhost:3000'
const NETWORK = 'http://localhost:8000/deployment.json'

export default function Page() {
  const [steps, setSteps] = useState<string[]>([])
  const say = (step: string) => setSteps((before) => [...before, step])
  const pay = () => runPayroll(SERVICE, NETWORK, say).catch((error) => say(String(error)))
  return (
    <main>
      <button type="button" onClick={pay}>
        Pay
      </button>
      <progress aria-label="Progress" value={steps.length} max={9} />
      <ol>
        {steps.map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
    </main>
  )
}
